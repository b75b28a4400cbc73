// New filters: empty, of all of their keys, from files and bytes, and copies.
#include <mutex>
#include <shared_mutex>

#include "column.h"
#include "filter.h"
#include "options.h"

namespace perhaps::python {
namespace {

// What __init__ made. A filter is made once.
PyObject* keep(PyObject* self, perhaps_filter* filter) {
  State* const state = state_of(self);
  const Writing alone(*state);
  if (state->filter != nullptr) {
    perhaps_free(filter);
    PyErr_SetString(errors.error, "this filter exists already: make another");
    return nullptr;
  }
  state->filter = filter;
  Py_RETURN_NONE;
}

}  // namespace

PyObject* filter_make(PyObject* self, PyObject* args) {
  Options options;
  if (!read_options(args, options)) return nullptr;
  perhaps_filter* filter = nullptr;
  perhaps_status status = PERHAPS_OK;
  {
    const NoGil others;
    status = perhaps_new(&options.to, &filter);
  }
  if (status != PERHAPS_OK) return raise(status);
  return keep(self, filter);
}

PyObject* filter_build(PyObject* self, PyObject* args) {
  PyObject* column = nullptr;
  PyObject* rest = nullptr;
  Options options;
  if (!PyArg_ParseTuple(args, "OO!", &column, &PyTuple_Type, &rest) || !read_options(rest, options)) return nullptr;
  return guarded([&]() -> PyObject* {
    perhaps_filter* filter = nullptr;
    bool mixed = false;
    const auto use = [&](const Run& run) {
      if (filter != nullptr) {
        mixed = true;
        return false;
      }
      perhaps_status status = PERHAPS_OK;
      {
        const NoGil others;
        status = run.of() == Run::Of::numbers ? perhaps_build_integers(&options.to, run.numbers(), run.size(), &filter)
                                              : perhaps_build(&options.to, run.keys(), run.size(), &filter);
      }
      if (status != PERHAPS_OK) raise(status);
      return status == PERHAPS_OK;
    };
    bool done = for_each_run(column, {.at_most = SIZE_MAX}, use);
    if (done && filter == nullptr) done = use(Run());  // no key at all
    if (mixed) PyErr_SetString(PyExc_TypeError, "a filter is built from texts and bytes, or from ints, not from both");
    if (done) return keep(self, filter);
    perhaps_free(filter);
    return nullptr;
  });
}

PyObject* filter_open(PyObject* self, PyObject* args) {
  PyObject* path = nullptr;
  int verify = 1;
  perhaps_open_options options{};
  options.size = sizeof options;
  if (!PyArg_ParseTuple(args, "O&O&zzp", PyUnicode_FSConverter, &path, to_secret, &options.secret, &options.format,
                        &options.parameters, &verify))
    return nullptr;
  const Ref kept(path);
  if (verify == 0) options.flags = PERHAPS_NO_VERIFY;
  perhaps_filter* filter = nullptr;
  perhaps_status status = PERHAPS_OK;
  {
    const char* const name = PyBytes_AsString(path);
    const NoGil others;
    status = perhaps_open(name, &options, &filter);
  }
  if (status != PERHAPS_OK) return raise(status);
  return keep(self, filter);
}

PyObject* filter_read(PyObject* self, PyObject* args) {
  Py_buffer bytes{};
  perhaps_open_options options{};
  options.size = sizeof options;
  if (!PyArg_ParseTuple(args, "y*O&zzz", &bytes, to_secret, &options.secret, &options.format, &options.parameters,
                        &options.file_name))
    return nullptr;
  perhaps_filter* filter = nullptr;
  perhaps_status status = PERHAPS_OK;
  {
    const NoGil others;
    status = perhaps_from_bytes(bytes.buf, static_cast<std::size_t>(bytes.len), &options, &filter);
  }
  PyBuffer_Release(&bytes);
  if (status != PERHAPS_OK) return raise(status);
  return keep(self, filter);
}

PyObject* filter_copy_from(PyObject* self, PyObject* other) {
  State* const from = made_other(other);
  if (from == nullptr) return nullptr;
  perhaps_filter* filter = nullptr;
  perhaps_status status = PERHAPS_OK;
  {
    const NoGil others;
    const std::shared_lock reading(from->lock);
    status = perhaps_copy(from->filter, &filter);
  }
  if (status != PERHAPS_OK) return raise(status);
  return keep(self, filter);
}

}  // namespace perhaps::python
