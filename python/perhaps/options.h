// The options of a new filter, as the package passes them.
#pragma once
#include "interpreter.h"

namespace perhaps::python {

struct Options {
  perhaps_options to{};
  std::uint64_t seed = 0;
};

// Of a tuple: family, keys, fpr, bits_per_key, max_bytes, guard_bits, arity, seed, secret, threads, format, parameters.
// False: an exception is set.
bool read_options(PyObject* args, Options& options);

// A converter for PyArg_ParseTuple: None, or the 16 bytes of a secret, to a pointer to unsigned char.
int to_secret(PyObject* object, void* to);

}  // namespace perhaps::python
