#include "interpreter.h"

namespace perhaps::python {

Errors errors;

PyObject* raise(perhaps_status status) {
  PyObject* type = errors.error;
  switch (status) {
    case PERHAPS_TRUNCATED:
    case PERHAPS_BAD_MAGIC:
    case PERHAPS_BAD_VERSION:
    case PERHAPS_BAD_CHECKSUM:
      type = errors.damaged;
      break;
    case PERHAPS_BAD_PARAMETER:
      type = errors.bad_request;
      break;
    case PERHAPS_BAD_KEY:
      type = errors.wrong_key;
      break;
    case PERHAPS_MISMATCH:
      type = errors.mismatch;
      break;
    case PERHAPS_FULL:
      type = errors.full;
      break;
    case PERHAPS_UNSUPPORTED:
      type = errors.unsupported;
      break;
    case PERHAPS_IO:
      type = errors.file;
      break;
    case PERHAPS_NO_MEMORY:
      return PyErr_NoMemory();
    default:
      break;
  }
  PyErr_SetString(type, perhaps_last_error());
  return nullptr;
}

}  // namespace perhaps::python
