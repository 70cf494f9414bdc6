name = '{name}'
name = name.strip()
if name:
    print(f'你好,{name}!')
else:
    print('你好!')
