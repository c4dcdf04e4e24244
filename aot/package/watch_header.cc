// Declarations of libraries that measure or check their operations.
#include "absl/strings/str_cat.h"
#include "aot/package/header_text.h"

namespace kiln {
namespace {

constexpr char kProfileTypes[] =
#include "aot/package/profile.inc"
    ;
constexpr char kNumericsTypes[] =
#include "aot/package/numerics.inc"
    ;

constexpr char kProfile[] = R"(
// How often each operation ran and how long, of all measured runs since the library was loaded or reset. Entries are
// numbered as the program runs them; the time of a loop includes its body's. Counting is safe in any number of threads;
// the functions that reset or trace need that no run is under way.
void $NAME_profile_reset(void) $[profile_reset$];
int64_t $NAME_profile_count(void) $[profile_count$];
kiln_profile_entry $NAME_profile_entry(int64_t entry) $[profile_entry$];
// From now on one run in `every` is measured, chosen as the run begins: 1, as at first, is every run, 0 none. Runs that
// are not measured count one number. At any time.
void $NAME_profile_sample(int64_t every) $[profile_sample$];
// From now on the latest `room` events are kept in memory of the caller's; NULL: none are.
void $NAME_profile_trace(kiln_profile_event* events, int64_t room) $[profile_trace$];
// Writes these events as JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing show. 0, or -1 with errno set.
int $NAME_profile_write_trace(const char* path) $[profile_write_trace$];
)";

constexpr char kNumerics[] = R"(
// A run ends with $UPPER_NUMERICS when an operation gives a NaN that no input of it had, or an infinity though all were
// finite: $NAME_numerics_text says which, for the calling thread's latest run. A handler, which is the library's, is told
// of each and may let the run go on; NULL: every one ends it.
void $NAME_numerics_handle(kiln_numerics_handler* handler, void* self) $[numerics_handle$];
const char* $NAME_numerics_text(void) $[numerics_text$];
)";

constexpr char kProfileMembers[] = R"(
  // $NAME_profile_* of $NAME_c.h.
  struct Profile {
    static void reset() { $NAME_profile_reset(); }
    static std::int64_t size() { return $NAME_profile_count(); }
    static kiln_profile_entry entry(std::int64_t k) { return $NAME_profile_entry(k); }
    static void sample(std::int64_t every) { $NAME_profile_sample(every); }
    static void trace(kiln_profile_event* events, std::int64_t room) { $NAME_profile_trace(events, room); }
    static bool write_trace(const char* path) { return $NAME_profile_write_trace(path) == 0; }
  };
)";

constexpr char kNumericsMembers[] = R"(
  // $NAME_numerics_* of $NAME_c.h.
  struct Numerics {
    static void handle(kiln_numerics_handler* handler, void* self) { $NAME_numerics_handle(handler, self); }
    static const char* text() { return $NAME_numerics_text(); }
  };
)";

}  // namespace

std::string WatchTypes(const CompiledModel& m) {
  return absl::StrCat(m.debug.profile ? kProfileTypes : "", m.debug.check_numerics ? kNumericsTypes : "");
}

std::string WatchDeclarations(const CompiledModel& m) {
  return absl::StrCat(m.debug.profile ? kProfile : "", m.debug.check_numerics ? kNumerics : "");
}

std::string WatchMembers(const CompiledModel& m) {
  return absl::StrCat(m.debug.profile ? kProfileMembers : "", m.debug.check_numerics ? kNumericsMembers : "");
}

std::string WatchedRange(const CompiledModel& e) {
  if (!e.debug.profile) return "";
  return absl::StrCat("// Its operations among those of $LIBRARY_profile_entry: from the first to before the second.\n",
                      "#define $UPPER_PROFILE_BEGIN ", e.code.ops_begin, "\n#define $UPPER_PROFILE_END ",
                      e.code.ops_end, "\n");
}

}  // namespace kiln
