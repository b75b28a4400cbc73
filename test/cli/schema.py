"""What --json prints, compared with the fields, types and form that a command describes: those of the man page."""
import json
import subprocess

TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "strings": dict, "array": list}


def shapes_of(program):
    """{when: (form, {name: type})} of the command that this list of words begins."""
    shapes = {}
    described = subprocess.run([*program, "--describe"], capture_output=True, check=True, text=True).stdout
    for line in described.splitlines():
        word, *rest = line.split("\t")
        if word == "json":
            fields = {}
            shapes[rest[0]] = (rest[1], fields)
        elif word == "field":
            fields[rest[0]] = rest[1]
    return shapes


def check_value(test, value, kind, where):
    kind = kind.removesuffix("?")
    if value is None:
        test.assertTrue(kind.endswith(" or null"), where)
        return
    kind = kind.removesuffix(" or null")
    test.assertIsInstance(value, TYPES[kind], where)
    test.assertEqual(isinstance(value, bool), kind == "boolean", where)
    if kind == "strings":
        for one in value.values():
            test.assertIsInstance(one, str, where)


def check_object(test, value, fields, where):
    test.assertIsInstance(value, dict, where)
    nested = {name.partition("[].")[0] for name in fields if "[]." in name}
    for name in nested:
        test.assertIsInstance(value.get(name), list, (where, name))
        inner = {f.partition("[].")[2]: t for f, t in fields.items() if f.startswith(name + "[].")}
        for one in value[name]:
            check_object(test, one, inner, where + "." + name)
    plain = {f: t for f, t in fields.items() if "[]." not in f}
    test.assertEqual(set(value) - set(plain) - nested, set(), where + ": not described")
    test.assertEqual({f for f, t in plain.items() if not t.endswith("?")} - set(value), set(), where + ": missing")
    for name in set(plain) & set(value):
        check_value(test, value[name], plain[name], f"{where}: {name}: {value[name]!r}")


def check(test, output, shape, where):
    form, fields = shape
    if form == "an object on each line":
        objects = [json.loads(line) for line in output.splitlines()]
    elif form == "an array of objects":
        objects = json.loads(output)
        test.assertIsInstance(objects, list, where)
    else:
        test.assertEqual(form, "an object")
        objects = [json.loads(output)]
    test.assertGreater(len(objects), 0, where)
    for one in objects:
        check_object(test, one, fields, where)
