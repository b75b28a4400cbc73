#include "filter.h"

#include <new>

namespace perhaps::python {
namespace {

PyTypeObject* filter_type = nullptr;

PyObject* filter_new(PyTypeObject* type, PyObject*, PyObject*) {
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  PyObject* const self = allocate(type, 0);
  if (self == nullptr) return nullptr;
  reinterpret_cast<Filter*>(self)->state = new (std::nothrow) State;
  if (state_of(self) != nullptr) return self;
  Py_DECREF(self);
  return PyErr_NoMemory();
}

void filter_dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  if (State* const state = state_of(self)) {
    perhaps_free(state->filter);
    delete state;
  }
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

PyMethodDef filter_methods[] = {
    {"_make", filter_make, METH_VARARGS, nullptr},
    {"_build", filter_build, METH_VARARGS, nullptr},
    {"_open", filter_open, METH_VARARGS, nullptr},
    {"_read", filter_read, METH_VARARGS, nullptr},
    {"_copy_from", filter_copy_from, METH_O, nullptr},
    {"add", filter_add, METH_O, "add($self, key, /)\n--\n\nInserts one key: a str, bytes or int."},
    {"discard", filter_discard, METH_O,
     "discard($self, key, /)\n--\n\nErases one key that was inserted: 'removed', 'absent', or 'kept' if a"
     " full counter remains."},
    {"update", filter_update, METH_O, "update($self, keys, /)\n--\n\nInserts every key of a column or an iterable."},
    {"_contains", filter_contains_column, METH_O, nullptr},
    {"_merge", filter_merge, METH_O, nullptr},
    {"_intersect", filter_intersect, METH_O, nullptr},
    {"__bytes__", filter_bytes, METH_NOARGS, "The bytes of the file that save() writes."},
    {"_save", filter_save, METH_VARARGS, nullptr},
    {"_nbytes", filter_nbytes, METH_NOARGS, nullptr},
    {"_describe", filter_describe, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot filter_slots[] = {{Py_tp_new, reinterpret_cast<void*>(filter_new)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(filter_dealloc)},
                              {Py_tp_methods, filter_methods},
                              {Py_sq_contains, reinterpret_cast<void*>(filter_contains)},
                              {0, nullptr}};
PyType_Spec filter_spec = {"perhaps._native.Filter", sizeof(Filter), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           filter_slots};

}  // namespace

State* made(PyObject* self) {
  State* const state = state_of(self);
  if (state != nullptr && state->filter != nullptr) return state;
  PyErr_SetString(errors.error, "this filter was never made: __init__ did not run or failed");
  return nullptr;
}

State* made_other(PyObject* other) {
  if (PyObject_TypeCheck(other, filter_type) != 0) return made(other);
  PyErr_SetString(PyExc_TypeError, "a filter is combined with a filter");
  return nullptr;
}

PyObject* make_filter_type(PyObject* module) {
  PyObject* const type = PyType_FromModuleAndSpec(module, &filter_spec, nullptr);
  filter_type = reinterpret_cast<PyTypeObject*>(type);
  return type;
}

}  // namespace perhaps::python
