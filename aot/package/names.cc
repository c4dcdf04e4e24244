#include "aot/package/names.h"

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/base/status.h"
#include "compiler/base/text.h"

namespace kiln {
namespace {

#define TAKEN(table, words) constexpr char table[] = words;
#include "aot/package/taken_names.def"

using Words = absl::flat_hash_set<absl::string_view>;

const Words& WordsOf(const char* table) {
  static const auto* const tables = [] {
    auto* t = new absl::flat_hash_map<const char*, Words>;
#define TAKEN(table, words) (*t)[table] = absl::StrSplit(table, ' ', absl::SkipEmpty());
#include "aot/package/taken_names.def"
    return t;
  }();
  return tables->at(table);
}

bool In(const char* table, absl::string_view name) { return WordsOf(table).contains(name); }

// Macros that C's headers define in families.
bool IsMacroOfAFamily(absl::string_view name) {
  if (absl::EndsWith(name, "_")) return false;
  if (absl::StartsWith(name, "PRI") || absl::StartsWith(name, "SCN")) {
    for (const char* width : {"8", "16", "32", "64", "MAX", "PTR"})
      if (absl::EndsWith(name, width)) return true;
    return false;
  }
  for (char c : name)
    if (absl::ascii_islower(c)) return false;
  if (absl::StartsWith(name, "SIG")) return true;
  for (const char* limit : {"_MAX", "_MIN", "_WIDTH"})
    if (absl::EndsWith(name, limit)) return true;
  const absl::string_view family = name.substr(0, name.find('_'));
  if (family == name) return false;
  for (const char* f :
       {"ATOMIC", "BUS",  "CLD",  "CLOCK",   "DBL", "FD",   "FE",   "FLT", "FP",  "FPE",   "ILL", "LC",   "LDBL",
        "M",      "MATH", "POLL", "PTHREAD", "SA",  "SEEK", "SEGV", "SI",  "SIG", "SIGEV", "SS",  "TIME", "XATTR"})
    if (family == f) return true;
  return absl::StartsWith(family, "INT") || absl::StartsWith(family, "UINT");
}

// As the macros of systems' headers are written, of which there are thousands: PF_INET, M_PIf, st_mtime.
bool LooksLikeAMacro(absl::string_view name) {
  if (absl::StartsWith(name, "M_") || (absl::StartsWith(name, "st_") && absl::EndsWith(name, "time"))) return true;
  const bool capitals = absl::c_none_of(name, absl::ascii_islower) && absl::c_any_of(name, absl::ascii_isupper);
  return capitals && name.size() > 1 && (name.size() > 3 || absl::StrContains(name, "_"));
}

// __FILE__, _Complex: the compiler's own.
bool IsReserved(absl::string_view name) {
  return name.size() > 1 && name[0] == '_' && (name[1] == '_' || absl::ascii_isupper(name[1]));
}

// Why no identifier at all can be spelled so.
std::string WhyTaken(absl::string_view name) {
  if (In(kKeywordsOfC, name)) return "a keyword of C";
  if (In(kKeywordsOfCpp, name)) return "a keyword of C++";
  if (In(kMacros, name) || In(kErrors, name) || IsMacroOfAFamily(name)) return "a macro of C's headers or compilers";
  if (In(kMacrosOfWindows, name)) return "a macro of Windows' headers";
  if (IsReserved(name)) return "reserved for the compiler";
  return "";
}

bool IsFixedWidthType(absl::string_view name) {
  return In(kTypes, name) || name == "size_t" || (absl::EndsWith(name, "_t") && absl::StrContains(name, "int"));
}

// Of the types that all headers share.
bool IsKilns(absl::string_view name) {
  return absl::EqualsIgnoreCase(name, "kiln") || absl::StartsWithIgnoreCase(name, "kiln_");
}

// Like a name that the headers derive from the library's.
bool IsDerived(absl::string_view name, const std::string& library) {
  if (absl::StartsWith(name, absl::AsciiStrToUpper(library) + "_")) return true;
  if (!absl::ConsumePrefix(&name, library) || !absl::ConsumePrefix(&name, "_")) return false;
  for (const char* own : {"run", "parallel", "pool", "comm", "world", "gpu", "model", "buffer", "call_status",
                          "status_text", "batch_for", "argument_", "result_", "entry", "weights"})
    if (absl::StartsWith(name, own)) return true;
  return false;
}

// What the headers make of the ports of one side.
class Side {
 public:
  // False if another port's macros would be the same.
  bool Take(const std::string& name) {
    const std::string upper = absl::AsciiStrToUpper(name), count = upper + "_COUNT";
    if (macros_.contains(upper) || macros_.contains(count)) return false;
    macros_.insert(upper);
    macros_.insert(count);
    return true;
  }

 private:
  absl::flat_hash_set<std::string> macros_;
};

// Whether `name` is an entry's, followed by what begins the names of its arrays or of its programs for batch sizes.
bool BelongsTo(absl::string_view name, const std::string& entry) {
  if (!absl::StartsWithIgnoreCase(name, entry + "_")) return false;
  name.remove_prefix(entry.size() + 1);
  return absl::StartsWithIgnoreCase(name, "argument_") || absl::StartsWithIgnoreCase(name, "result_") ||
         (name.size() > 1 && absl::AsciiStrToLower(name.substr(0, 1)) == "b" && absl::ascii_isdigit(name[1]));
}

// `name`, or with a number behind it.
std::string Unique(const std::string& name, size_t k, Side* side) {
  if (side->Take(name)) return name;
  std::string numbered = absl::StrCat(name, "_", k);
  while (!side->Take(numbered)) numbered += '_';
  return numbered;
}

}  // namespace

absl::Status CheckLibraryName(absl::string_view name) {
  const auto fail = [&](absl::string_view why) {
    return InvalidArgument("error: --name '", name, "' cannot name a library, its class and its symbols: it is ", why);
  };
  if (CIdentifier(name) != name) return fail("not a C identifier");
  if (const std::string why = WhyTaken(name); !why.empty()) return fail(why);
  if (In(kTypes, name) || absl::EndsWith(name, "_t"))
    return fail("a type or namespace of the system's headers, or like one");
  if (name.size() == 1 && absl::StrContains("FRWXfrwx", name))
    return fail(absl::StrCat("the beginning of a macro of <unistd.h> (", absl::AsciiStrToUpper(name), "_OK)"));
  if (name == "main") return fail("the program's entry");
  if (IsKilns(name)) return fail("like a name of the types that all models share");
  if (In(kOfTheHeader, name) || absl::StartsWith(name, "Argument_") || absl::StartsWith(name, "Result_"))
    return fail("a member of the generated class");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> NamePorts(const std::vector<std::string>& names, bool from_config,
                                                   absl::string_view what) {
  std::vector<std::string> out;
  Side side;
  for (size_t k = 0; k < names.size(); ++k) {
    const std::string name = CIdentifier(names[k]);
    if (!from_config)
      out.push_back(Unique(name, k, &side));
    else if (side.Take(name))
      out.push_back(name);
    else
      return InvalidArgument("error: two ", what, "s are named '", name,
                             "', or so alike that their macros are the same");
  }
  return out;
}

absl::StatusOr<std::vector<std::string>> NameEntries(const std::vector<std::string>& names,
                                                     const std::string& library) {
  std::vector<std::string> out;
  Side side;
  for (size_t k = 0; k < names.size(); ++k) {
    std::string name = MemberName(names[k]);
    // Inside the library's class its name hides others.
    if (name == library || IsKilns(name) || IsFixedWidthType(name) || In(kOfTheHeader, name) || In(kOfLibraries, name))
      name += '_';
    out.push_back(Unique(name, k, &side));
  }
  for (const std::string& a : out)
    for (const std::string& b : out)
      if (BelongsTo(b, a))
        return InvalidArgument("error: entry '", b, "' is called like what belongs to entry '", a,
                               "' in the header; --entry NAME=FILE gives another name");
  return out;
}

std::string MemberName(absl::string_view name) {
  std::string id = CIdentifier(name);
  if (IsReserved(id)) id.insert(0, "m");
  // FOO_H_ is the guard of a header.
  if (LooksLikeAMacro(id)) id += absl::EndsWith(id, "_H") ? "_m" : absl::EndsWith(id, "_") ? "m" : "_";
  while (!WhyTaken(id).empty()) id += '_';
  return id;
}

std::string WhyNotATarget(absl::string_view target, const std::string& library) {
  if (target == "main") return "the program's entry";
  if (In(kSystemFunctions, target) || absl::StartsWith(target, "pthread_"))
    return "a function of C's library or the system's";
  if (IsDerived(target, library)) return "like a function of the library itself";
  return "";
}

std::vector<std::string> NameCallTargets(const std::vector<CustomCallSignature>& calls, const std::string& library) {
  std::vector<std::string> out;
  absl::flat_hash_set<std::string> used = {library};
  for (const CustomCallSignature& c : calls) {
    std::string id = CIdentifier(c.target);
    if (IsReserved(id) || IsKilns(id) || IsDerived(id, library)) id = absl::StrCat("target_", id);
    while (!WhyTaken(id).empty() || IsFixedWidthType(id) || !WhyNotATarget(id, library).empty() ||
           !used.insert(id).second)
      id += '_';
    out.push_back(std::move(id));
  }
  return out;
}

std::vector<std::string> NameAttributes(const CustomCallSignature& call, const std::string& library) {
  std::vector<std::string> out;
  absl::flat_hash_set<std::string> used;
  for (const CallAttributeValue& a : call.attributes) {
    std::string field = CIdentifier(a.name);
    if (IsReserved(field) || IsKilns(field) || IsDerived(field, library)) field = absl::StrCat("attribute_", field);
    while (!WhyTaken(field).empty() || IsFixedWidthType(field) || used.contains(field) ||
           used.contains(field + "_size"))
      field += '_';
    used.insert(field);
    if (a.text || a.list) used.insert(field + "_size");
    out.push_back(std::move(field));
  }
  return out;
}

}  // namespace kiln
