// Changes: keys come and go, filters are combined.
#include <mutex>
#include <shared_mutex>
#include <span>

#include "c/digests.h"
#include "column.h"
#include "filter.h"

namespace perhaps::python {
namespace {

perhaps_status insert(perhaps_filter& filter, const Run& run) {
  switch (run.of()) {
    case Run::Of::bytes:
      return perhaps_insert(&filter, run.keys(), run.size(), nullptr);
    case Run::Of::numbers:
      return perhaps_insert_integers(&filter, run.numbers(), run.size(), nullptr);
    case Run::Of::digests:
      return insert_digests(filter, std::span(run.numbers(), run.size()));
  }
  return PERHAPS_INTERNAL;
}

// Both locks in the order of their addresses, so that a |= b and b |= a cannot wait for each other.
template <class Combine>
PyObject* combine(PyObject* self, PyObject* other, Combine with) {
  State* const to = made(self);
  State* const from = to == nullptr ? nullptr : made_other(other);
  if (from == nullptr) return nullptr;
  perhaps_status status = PERHAPS_OK;
  {
    const NoGil others;
    if (to == from) {
      const std::unique_lock alone(to->lock);
      status = with(to->filter, to->filter);
    } else if (to < from) {
      const std::unique_lock alone(to->lock);
      const std::shared_lock reading(from->lock);
      status = with(to->filter, from->filter);
    } else {
      const std::shared_lock reading(from->lock);
      const std::unique_lock alone(to->lock);
      status = with(to->filter, from->filter);
    }
  }
  if (status != PERHAPS_OK) return raise(status);
  Py_RETURN_NONE;
}

}  // namespace

PyObject* filter_add(PyObject* self, PyObject* object) {
  State* const state = made(self);
  Key key;
  if (state == nullptr || !key_of(object, key)) return nullptr;
  perhaps_status status = PERHAPS_OK;
  {
    const Writing alone(*state);
    status = key.is_number ? perhaps_insert_integers(state->filter, &key.number, 1, nullptr)
                           : perhaps_insert(state->filter, &key.bytes, 1, nullptr);
  }
  if (status != PERHAPS_OK) return raise(status);
  Py_RETURN_NONE;
}

PyObject* filter_discard(PyObject* self, PyObject* object) {
  State* const state = made(self);
  Key key;
  if (state == nullptr || !key_of(object, key)) return nullptr;
  perhaps_erased erased{};
  erased.size = sizeof erased;
  perhaps_status status = PERHAPS_OK;
  {
    const Writing alone(*state);
    status = key.is_number ? perhaps_erase_integers(state->filter, &key.number, 1, &erased)
                           : perhaps_erase(state->filter, &key.bytes, 1, &erased);
  }
  if (status != PERHAPS_OK) return raise(status);
  return PyUnicode_FromString(erased.removed != 0 ? "removed" : erased.kept != 0 ? "kept" : "absent");
}

PyObject* filter_update(PyObject* self, PyObject* column) {
  State* const state = made(self);
  if (state == nullptr) return nullptr;
  return guarded([&]() -> PyObject* {
    const auto hasher = hasher_of(*state->filter);
    const bool done = for_each_run(column, {.hasher = hasher ? &*hasher : nullptr}, [&](const Run& run) {
      perhaps_status status = PERHAPS_OK;
      {
        const NoGil others;
        const std::unique_lock alone(state->lock);
        status = insert(*state->filter, run);
      }
      if (status != PERHAPS_OK) raise(status);
      return status == PERHAPS_OK;
    });
    if (!done) return nullptr;
    Py_RETURN_NONE;
  });
}

PyObject* filter_merge(PyObject* self, PyObject* other) { return combine(self, other, perhaps_merge); }
PyObject* filter_intersect(PyObject* self, PyObject* other) { return combine(self, other, perhaps_intersect); }

}  // namespace perhaps::python
