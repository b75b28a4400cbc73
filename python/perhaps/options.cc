#include "options.h"

#include <limits>

namespace perhaps::python {
namespace {

// A count among the options. PyArg_ParseTuple wraps numbers that are out of range, and knows no names.
template <class Number>
bool count_of(PyObject* object, const char* name, Number& to) {
  const Ref index(PyNumber_Index(object));
  if (!index) return false;
  const unsigned long long value = PyLong_AsUnsignedLongLong(index.get());
  const bool is_long = PyErr_Occurred() != nullptr;  // or negative
  if (is_long) PyErr_Clear();
  if (is_long || value > std::numeric_limits<Number>::max()) {
    PyErr_Format(errors.bad_request, "%s: %S is not a number from 0 to %llu", name, index.get(),
                 static_cast<unsigned long long>(std::numeric_limits<Number>::max()));
    return false;
  }
  to = static_cast<Number>(value);
  return true;
}

}  // namespace

int to_secret(PyObject* object, void* to) {
  if (object == Py_None) return 1;
  if (!PyBytes_Check(object) || PyBytes_Size(object) != 16) {
    PyErr_SetString(errors.bad_request, "a key of the hash is a bytes object of 16 bytes");
    return 0;
  }
  *static_cast<const unsigned char**>(to) = reinterpret_cast<const unsigned char*>(PyBytes_AsString(object));
  return 1;
}

bool read_options(PyObject* args, Options& options) {
  perhaps_options& to = options.to;
  to.size = sizeof to;
  PyObject* keys = nullptr;
  PyObject* max_bytes = nullptr;
  PyObject* guard_bits = nullptr;
  PyObject* arity = nullptr;
  PyObject* seed = nullptr;
  PyObject* threads = nullptr;
  if (!PyArg_ParseTuple(args, "zOddOOOOO&Ozz", &to.family, &keys, &to.fpr, &to.bits_per_key, &max_bytes, &guard_bits,
                        &arity, &seed, to_secret, &to.secret, &threads, &to.format, &to.parameters))
    return false;
  if (!count_of(keys, "keys", to.keys) || !count_of(max_bytes, "max_bytes", to.max_bytes) ||
      !count_of(guard_bits, "guard_bits", to.guard_bits) || !count_of(arity, "arity", to.arity) ||
      !count_of(threads, "threads", to.threads))
    return false;
  if (seed != Py_None) {
    if (!count_of(seed, "seed", options.seed)) return false;
    to.seed = &options.seed;
  }
  return true;
}

}  // namespace perhaps::python
