// What a filter is: its description, its bytes, its file.
#include <mutex>
#include <shared_mutex>

#include "filter.h"

namespace perhaps::python {

PyObject* filter_bytes(PyObject* self, PyObject*) {
  State* const state = made(self);
  if (state == nullptr) return nullptr;
  // Another thread may make it grow between the two calls.
  for (std::size_t capacity = 0;;) {
    Ref bytes(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(capacity)));
    if (!bytes) return nullptr;
    std::size_t size = 0;
    perhaps_status status = PERHAPS_OK;
    {
      char* const to = PyBytes_AsString(bytes.get());
      const NoGil others;
      const std::shared_lock reading(state->lock);
      status = perhaps_to_bytes(state->filter, to, capacity, &size);
    }
    if (status == PERHAPS_OK && size == capacity) return bytes.release();
    if (status != PERHAPS_OK && status != PERHAPS_TOO_SMALL) return raise(status);
    capacity = size;
  }
}

PyObject* filter_save(PyObject* self, PyObject* args) {
  State* const state = made(self);
  PyObject* path = nullptr;
  if (state == nullptr || !PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path)) return nullptr;
  const Ref kept(path);
  perhaps_status status = PERHAPS_OK;
  {
    const char* const name = PyBytes_AsString(path);
    const NoGil others;
    const std::shared_lock reading(state->lock);
    status = perhaps_save(state->filter, name);
  }
  if (status != PERHAPS_OK) return raise(status);
  Py_RETURN_NONE;
}

PyObject* filter_nbytes(PyObject* self, PyObject*) {
  State* const state = made(self);
  if (state == nullptr) return nullptr;
  const Reading reading(*state);
  return PyLong_FromUnsignedLongLong(perhaps_byte_size(state->filter));
}

PyObject* filter_describe(PyObject* self, PyObject*) {
  State* const state = made(self);
  if (state == nullptr) return nullptr;
  perhaps_description d{};
  d.size = sizeof d;
  perhaps_status status = PERHAPS_OK;
  {
    const NoGil others;
    const std::shared_lock reading(state->lock);
    status = perhaps_describe(state->filter, &d);
  }
  if (status != PERHAPS_OK) return raise(status);
  return Py_BuildValue(
      "{s:s,s:s,s:s,s:K,s:K,s:K,s:K,s:K,s:d,s:d,s:d,s:d,s:O}", "format", d.format, "family", d.family, "hash", d.hash,
      "bytes", static_cast<unsigned long long>(d.bytes), "bits", static_cast<unsigned long long>(d.bits), "probes",
      static_cast<unsigned long long>(d.probes), "keys", static_cast<unsigned long long>(d.keys), "capacity",
      static_cast<unsigned long long>(d.capacity), "keys_estimated", d.keys_estimated, "fill", d.fill, "fpr", d.fpr,
      "fpr_at_capacity", d.fpr_at_capacity, "read_only", d.read_only != 0 ? Py_True : Py_False);
}

}  // namespace perhaps::python
