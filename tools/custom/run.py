def _run():
    import builtins, json, linecache, sys, traceback

    job = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    name = "execution.py"
    shown = [line + "\n" for line in job["template"].split("\n")]
    linecache.cache[name] = (len(job["template"]), None, shown, name)
    space = sys.modules["__main__"].__dict__
    space.update(__file__=name, __builtins__=builtins)
    for v in job["variables"]:
        value = v["value"]
        if v["text"]:
            value = "" if value is None else str(value)
        space[v["name"]] = value
    try:
        code = compile(job["source"], name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as e:
        if isinstance(e, SyntaxError) and e.lineno and e.lineno <= len(shown):
            e.text, e.offset, e.end_offset = shown[e.lineno - 1], None, None
        traceback.print_exception(type(e), e, None)
        sys.exit(1)
    del space["_run"]
    try:
        exec(code, space)
    except Exception as e:
        traceback.print_exception(type(e), e, e.__traceback__.tb_next)
        sys.stdout.flush()
        sys.exit(1)


_run()
