// Every row of batch kernels that this machine can run.
#pragma once
#include "kernel/instruction_set.h"

namespace perhaps::test {

// Calls `body(row)` with each row in use in turn, then restores the one that was in use before.
template <class Body>
void with_every_kernel(Body body) {
  const kernel::InstructionSet& before = kernel::active();
  for (const kernel::InstructionSet* row : kernel::instruction_sets()) {
    kernel::use(*row);
    body(*row);
  }
  kernel::use(before);
}

}  // namespace perhaps::test
