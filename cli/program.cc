// From the arguments to an exit code: the same for the tool and for the programs beside it.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <new>

#include "command.h"
#include "interrupt.h"
#include "print.h"

namespace perhaps::cli {

int run_command(const Command& command, int argc, char** argv) {
  set_command_name(command.name);
  if (argc == 2 && std::string_view(argv[1]) == "--describe") {  // for packagers: `perhaps man --with`
    Out().write(description_of(command));
    return kYes;
  }
  CLI::App app("", "perhaps " + std::string(command.name));
  const Command::Run work = command.declare(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    Out().write(help_of(command));
    return kYes;
  } catch (const CLI::ParseError& error) {
    fail("{} (see perhaps {} --help)", error.what(), command.name);
  }
  return work();
}

int run_program(int (*run)(int argc, char** argv), int argc, char** argv) noexcept {
  try {
    return run(argc, argv);
  } catch (const Interrupted& interrupted) {
    return 128 + interrupted.signal;
  } catch (const std::bad_alloc&) {
    say("", "out of memory");
  } catch (const std::exception& error) {  // a Failure says what it is
    say("", error.what());
  }
  return kError;
}

}  // namespace perhaps::cli
