// For the linker only: the function that memory.js brings along besides those of the system.
mergeInto(LibraryManager.library, { number_of: function () {} });
