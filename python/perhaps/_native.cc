// The extension behind the Python package: keys and columns of Python as arrays of the C API (perhaps.h), with the
// interpreter's lock released around batches. CPython's limited API of 3.11: one file serves every later version.
#include <string>

#include "filter.h"
#include "options.h"

namespace perhaps::python {
namespace {

PyObject* entries(int (*at)(std::size_t, perhaps_entry*)) {
  Ref list(PyList_New(0));
  perhaps_entry entry{};
  entry.size = sizeof entry;
  for (std::size_t i = 0; list && at(i, &entry) == 1; ++i) {
    const Ref row(Py_BuildValue("(ssNNNN)", entry.name, entry.summary, PyBool_FromLong(entry.inserts),
                                PyBool_FromLong(entry.erases), PyBool_FromLong(entry.merges),
                                PyBool_FromLong(entry.builds)));
    if (!row || PyList_Append(list.get(), row.get()) != 0) return nullptr;
  }
  return list.release();
}
PyObject* families(PyObject*, PyObject*) { return entries(perhaps_family_at); }
PyObject* formats(PyObject*, PyObject*) { return entries(perhaps_format_at); }

PyObject* size_of(PyObject*, PyObject* args) {
  Options options;
  if (!read_options(args, options)) return nullptr;
  perhaps_sizes sizes{};
  sizes.size = sizeof sizes;
  const perhaps_status status = perhaps_size_of(&options.to, &sizes);
  if (status != PERHAPS_OK) return raise(status);
  return Py_BuildValue("{s:K,s:K,s:K,s:d}", "bytes", static_cast<unsigned long long>(sizes.bytes), "bits",
                       static_cast<unsigned long long>(sizes.bits), "probes",
                       static_cast<unsigned long long>(sizes.probes), "fpr", sizes.fpr);
}

PyMethodDef module_methods[] = {{"families", families, METH_NOARGS, nullptr},
                                {"formats", formats, METH_NOARGS, nullptr},
                                {"size", size_of, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT, "perhaps._native", nullptr, -1, module_methods, nullptr, nullptr, nullptr, nullptr};

bool add_error(PyObject* module, PyObject*& to, const char* name, const char* text, PyObject* also = nullptr) {
  PyObject* const base = &to == &errors.error ? PyExc_Exception : errors.error;
  const Ref bases(also == nullptr ? PyTuple_Pack(1, base) : PyTuple_Pack(2, base, also));
  if (!bases) return false;
  to = PyErr_NewExceptionWithDoc((std::string("perhaps.") + name).c_str(), text, bases.get(), nullptr);
  return to != nullptr && PyModule_AddObjectRef(module, name, to) == 0;
}

}  // namespace
}  // namespace perhaps::python

PyMODINIT_FUNC PyInit__native() {
  using namespace perhaps::python;
  Ref module(PyModule_Create(&module_def));
  if (!module) return nullptr;
  PyObject* const m = module.get();
  // The reference is kept: whatever a filter is combined with is compared with its type.
  PyObject* const type = make_filter_type(m);
  if (type == nullptr || PyModule_AddObjectRef(m, "Filter", type) != 0) return nullptr;
  const bool good =
      add_error(m, errors.error, "Error", "What went wrong, in words. The kinds below are subclasses.") &&
      add_error(m, errors.damaged, "DamagedFile", "Bytes that are no filter: truncated, damaged, foreign or newer.") &&
      add_error(m, errors.mismatch, "Mismatch", "Two filters that cannot be combined; the text names what differs.") &&
      add_error(m, errors.full, "Full", "No room for another key.") &&
      add_error(m, errors.wrong_key, "WrongKey", "A keyed filter without its key, or with another one.") &&
      add_error(m, errors.bad_request, "BadRequest", "A number out of range, or an unknown name.", PyExc_ValueError) &&
      add_error(m, errors.unsupported, "Unsupported", "Something that this filter cannot do.") &&
      add_error(m, errors.file, "FileError", "The operating system reported an error.", PyExc_OSError) &&
      PyModule_AddStringConstant(m, "version", perhaps_version()) == 0;
  return good ? module.release() : nullptr;
}
