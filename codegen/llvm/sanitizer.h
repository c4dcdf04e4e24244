// Instrumentation for a program that is linked with -fsanitize=address or -fsanitize=thread.
#pragma once

namespace kiln {

enum class Sanitizer { kNone, kAddress, kThread };

}  // namespace kiln
