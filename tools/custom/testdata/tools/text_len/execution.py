text = '''{text}'''
print(f'[text_len] 字符数: {len(text)}')
