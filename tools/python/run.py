# What the interpreter runs when a model calls execute_python: it reads the code from standard input,
# checks it, runs it, and writes its result to a file. Failures are told on standard error, in words
# for the model, and by the exit code.
#
# It makes the levels useful and nothing safe: code can get round all of it. The sandbox around this
# process is the boundary (A-052, R-S20). Modules of the standard library take milliseconds to
# import, so this imports what it needs when it needs it.

import _ast
import builtins
import sys

# names that code of a level may not use.
FORBIDDEN = {
    "lenient": (),
    "standard": (
        "eval", "exec", "compile", "__import__", "open", "input", "globals", "locals", "vars",
        "breakpoint", "exit", "quit", "memoryview", "bytearray",
    ),
}
FORBIDDEN["strict"] = FORBIDDEN["standard"] + (
    "dir", "hasattr", "getattr", "setattr", "delattr", "type", "isinstance", "issubclass",
)

# Attributes with two underscores on each side lead from any object to the whole interpreter, but
# for those that ordinary classes call of their parents, and names.
HARMLESS = {
    "__%s__" % name
    for name in (
        "name qualname doc version members init new post_init init_subclass set_name str repr format hash "
        "bool len iter next reversed contains getitem setitem delitem missing call enter exit eq ne lt le "
        "gt ge add sub mul truediv floordiv mod divmod pow and or xor invert lshift rshift neg pos abs "
        "round int float index radd rsub rmul rtruediv iadd isub imul"
    ).split()
}
FRAMES = {
    "f_back", "f_builtins", "f_code", "f_globals", "f_locals", "gi_frame", "gi_code", "cr_frame", "cr_code",
    "ag_frame", "ag_code", "tb_frame", "tb_next",
}
PROVIDED = {"__name__", "__doc__", "__debug__"}
SOURCE = "<code>"
MAX_RESULT = 8000  # characters


def is_dunder(name):
    return name.startswith("__") and name.endswith("__") and len(name) > 4


def is_private(attribute):
    return attribute in FRAMES or is_dunder(attribute) and attribute not in HARMLESS


class Policy:
    """What code of a level may do."""

    def __init__(self, level, modules, extra):
        self.level = level
        self.modules = modules
        self.extra = extra
        self.forbidden = FORBIDDEN[level]
        self.proxies = {}
        self.original = builtins.__import__

    def refusal(self, what, names):
        """Why code is not run (A-046)."""
        things = "modules" if what == "imports" else what
        return "Blocked %s: %s. These %s are not allowed in '%s' mode." % (what, ", ".join(names), things, self.level)

    # Names are compared part by part: "xml.etree.ElementTree" allows neither "xml" nor "xml.sax",
    # and "collections" allows "collections.abc".
    def among(self, modules, name):
        parts = name.split(".")
        return any(".".join(parts[: i + 1]) in modules for i in range(len(parts)))

    def allows(self, name):
        return name == "__future__" or self.among(self.modules, name) or self.among(self.extra, name)

    def blocked_imports(self, name, members=()):
        """The modules that may not be imported of an import of name, and of members from it."""
        if self.allows(name):
            return []
        if not members or not self.leads_on(name):
            return [name]
        full = ["%s.%s" % (name, member) for member in members]
        return [module for module in full if not self.allows(module)]

    def check(self, tree):
        """What of the code is not allowed, as texts for the model."""
        imports, functions, attributes = [], [], []
        bound, used = set(), []
        for node in nodes(tree):
            kind = type(node)
            if kind is _ast.Import:
                for alias in node.names:
                    imports += self.blocked_imports(alias.name)
            elif kind is _ast.ImportFrom:
                members = [alias.name for alias in node.names]
                if node.level:
                    imports.append("." * node.level + (node.module or ""))
                else:
                    imports += self.blocked_imports(node.module, members)
            elif kind is _ast.Name and type(node.ctx) is _ast.Load:
                used.append(node.id)
            elif kind is _ast.Attribute and is_private(node.attr):
                attributes.append(node.attr)
            elif kind is _ast.MatchClass:
                attributes += [name for name in node.kwd_attrs if is_private(name)]
            if kind is _ast.Call and type(node.func) is _ast.Name:
                reached = self.reached(node)
                if reached is None:
                    functions.append("getattr with a name that is not written out")
                elif is_private(reached):
                    attributes.append(reached)
            bound.update(names_bound_by(node))
        functions = [name for name in used if self.is_forbidden(name) and name not in bound] + functions
        return [
            self.refusal(what, list(dict.fromkeys(names)))
            for what, names in (("imports", imports), ("functions", functions), ("attributes", attributes))
            if names
        ]

    def is_forbidden(self, name):
        return name in self.forbidden or is_dunder(name) and name not in PROVIDED

    def reached(self, call):
        """The attribute that a call of getattr and the like reaches: "" if it is none of these, and
        None if getattr is not told by a literal."""
        if call.func.id not in ("getattr", "setattr", "delattr") or len(call.args) < 2:
            return ""
        name = call.args[1]
        if type(name) is _ast.Constant and type(name.value) is str:
            return name.value
        return None if call.func.id == "getattr" else ""

    def namespace(self):
        """The built-ins of the code. Modules that it imports have the real ones."""
        names = {name: value for name, value in vars(builtins).items() if name not in self.forbidden}
        names["__import__"] = self.import_module
        for name in ("getattr", "setattr", "delattr"):
            if name in names:
                names[name] = guarded(names[name])
        return names

    def import_module(self, name, globals=None, locals=None, fromlist=(), level=0):
        blocked = ["." * level + name] if level else self.blocked_imports(name, fromlist or ())
        if blocked:
            raise ImportError(self.refusal("imports", blocked))
        module = self.original(name, None, None, fromlist or (), 0)
        imported = name if fromlist else name.partition(".")[0]
        if imported == "__future__" or self.among(self.extra, imported):
            return module
        return self.proxy(imported)

    def proxy(self, name):
        """A module with the public names of another one: not what that has imported (R-S20)."""
        if name not in self.proxies:
            self.proxies[name] = type(sys)(name, sys.modules[name].__doc__)
        seen = vars(self.proxies[name])
        if self.allows(name):
            seen.update(public_names(sys.modules[name]))
        for full, module in list(sys.modules.items()):
            parent, _, child = full.rpartition(".")
            if parent == name and type(module) is type(sys) and self.leads_on(full):
                seen[child] = module if self.among(self.extra, full) else self.proxy(full)
        return self.proxies[name]

    def leads_on(self, name):
        """Whether a module is allowed, or one in it."""
        return self.allows(name) or any(module.startswith(name + ".") for module in (*self.modules, *self.extra))


def public_names(module):
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [name for name in vars(module) if not name.startswith("_")]
    return {
        name: vars(module)[name]
        for name in listed
        if name in vars(module) and not isinstance(vars(module)[name], type(sys))
    }


def guarded(access):
    """Is getattr, setattr or delattr, for what the check of the code cannot see."""

    def checked(target, name, *rest):
        if isinstance(name, str) and is_private(name):
            raise AttributeError("%s is not allowed here" % name)
        return access(target, name, *rest)

    checked.__name__ = access.__name__
    return checked


def nodes(tree):
    """All nodes of a tree, in the order of the source, however deep it is."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        children = []
        for field in node._fields:
            value = getattr(node, field, None)
            children += value if isinstance(value, list) else [value]
        stack += [child for child in reversed(children) if isinstance(child, _ast.AST)]


def names_bound_by(node):
    """The names that a node gives a value: built-ins of that name are not meant any more."""
    kind = type(node)
    if kind is _ast.Name and type(node.ctx) is not _ast.Load:
        return [node.id]
    if kind in (_ast.FunctionDef, _ast.AsyncFunctionDef, _ast.ClassDef):
        return [node.name]
    if kind is _ast.arg:
        return [node.arg]
    if kind is _ast.alias:
        return [node.asname or node.name.partition(".")[0]]
    if kind is _ast.ExceptHandler and node.name:
        return [node.name]
    return []


def compiled(tree):
    """The code but for its last line, and that line if it has a value."""
    last = None
    if tree.body and type(tree.body[-1]) is _ast.Expr:
        last = compile(_ast.Expression(tree.body.pop().value), SOURCE, "eval")
    return compile(tree, SOURCE, "exec"), last


def run(statements, last, module):
    """Runs the code and returns its result: the value of its last line, or its variable result."""
    exec(statements, vars(module))
    value = None if last is None else eval(last, vars(module))
    return vars(module).get("result") if value is None else value


def describe(value):
    """A result as JSON: as it is, or as Python would show it."""
    import json

    try:
        text = json.dumps(value, allow_nan=False)
        if len(text) <= MAX_RESULT:
            return text
    except (TypeError, ValueError, RecursionError):
        pass
    shown = repr(value)
    if len(shown) > MAX_RESULT:
        shown = shown[:MAX_RESULT] + "…"
    return json.dumps(shown)


def show(error, code):
    """Prints an exception as Python would, without the frames of this file."""
    import linecache
    import traceback

    linecache.cache[SOURCE] = (len(code), None, code.splitlines(True), SOURCE)
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != SOURCE:
        frames = frames.tb_next
    traceback.print_exception(type(error), error, frames)


def main():
    sys.stdout.reconfigure(errors="backslashreplace")
    level, modules, extra = (sys.stdin.buffer.readline().decode().rstrip("\n").split(";"))
    policy = Policy(level, frozenset(modules.split()), frozenset(extra.split()))
    source = sys.stdin.buffer.read().decode()
    try:
        tree = compile(source, SOURCE, "exec", 0x400)  # ast.PyCF_ONLY_AST
        problems = [] if level == "lenient" else policy.check(tree)
        statements, last = compiled(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        sys.exit("Syntax error in code: %s" % (str(error) or type(error).__name__))
    if problems:
        sys.exit("\n".join(problems))
    module = type(sys)("__main__")
    if level != "lenient":
        module.__builtins__ = policy.namespace()
    sys.modules["__main__"] = module
    sys.argv = [SOURCE]
    sys.stdin = open("/dev/null", encoding="utf-8")
    out = open(".result", "w", encoding="utf-8")
    try:
        value = run(statements, last, module)
        if value is not None:
            out.write(describe(value))
        out.close()
        sys.stdout.flush()
    except SystemExit:
        raise
    except BaseException as error:
        show(error, source)
        sys.exit(1)


main()
