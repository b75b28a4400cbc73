// One key of Python: a str, bytes or int.
#pragma once
#include "interpreter.h"

namespace perhaps::python {

// One key. Text is its UTF-8 bytes, which Python keeps with the string.
struct Key {
  bool is_number = false;
  std::uint64_t number = 0;
  perhaps_key bytes{};
};

inline bool number_of(PyObject* object, std::uint64_t& number) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow == 0) {
    number = static_cast<std::uint64_t>(value);
    return value != -1 || PyErr_Occurred() == nullptr;
  }
  if (overflow > 0) {
    number = PyLong_AsUnsignedLongLong(object);
    if (number != UINT64_MAX || PyErr_Occurred() == nullptr) return true;
    PyErr_Clear();
  }
  PyErr_SetString(PyExc_OverflowError,
                  "an int has 64 bits here: -2**63 .. 2**64 - 1; larger keys may be text or bytes");
  return false;
}

// A borrowed object is fine: whatever runs code that could free it holds it.
inline bool key_of(PyObject* object, Key& key) {
  if (PyUnicode_CheckExact(object) || PyUnicode_Check(object)) {
    Py_ssize_t size = 0;
    key.bytes.data = PyUnicode_AsUTF8AndSize(object, &size);
    key.bytes.size = static_cast<std::size_t>(size);
    return key.bytes.data != nullptr;
  }
  if (PyBytes_Check(object)) {
    key.bytes = {PyBytes_AsString(object), static_cast<std::size_t>(PyBytes_Size(object))};
    return true;
  }
  if (PyLong_CheckExact(object)) {
    key.is_number = true;
    return number_of(object, key.number);
  }
  const Ref name(PyType_GetName(Py_TYPE(object)));
  if (!name) return false;
  // Truth values are no numbers, those of numpy included: is True the text "True" or 1?
  const bool is_bool = PyBool_Check(object) || PyUnicode_CompareWithASCIIString(name.get(), "bool_") == 0 ||
                       PyUnicode_CompareWithASCIIString(name.get(), "bool") == 0;
  if (PyIndex_Check(object) != 0 && !is_bool) {
    key.is_number = true;
    const Ref held = Ref::to(object);
    const Ref index(PyNumber_Index(object));
    return index && number_of(index.get(), key.number);
  }
  PyErr_Format(PyExc_TypeError, "a key is a str, bytes or int, not %S: encode it, for example as bytes", name.get());
  return false;
}

}  // namespace perhaps::python
