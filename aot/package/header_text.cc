#include "aot/package/header_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "aot/package/manifest.h"
#include "compiler/base/text.h"
#include "runtime_min/arrays.h"
#include "runtime_min/types.h"

namespace kiln {

std::string CType(PrimitiveType t) {
  if (t == PrimitiveType::Pred) return "uint8_t";
  if (t == PrimitiveType::F32) return "float";
  if (t == PrimitiveType::F64) return "double";
  if (t == PrimitiveType::C64) return "float";
  if (t == PrimitiveType::C128) return "double";
  const int bits = static_cast<int>(8 * ByteWidth(t));
  return absl::StrCat(IsSigned(t) ? "int" : "uint", bits, "_t");
}

int64_t CTypeCount(const Shape& s) { return s.IsArray() ? s.ElementCount() * (IsComplex(s.type()) ? 2 : 1) : 0; }

std::string PortText(const CompiledModel& m, bool result, size_t k) {
  if (m.ports.batches.empty()) {
    const Shape& s = (result ? m.ports.results : m.ports.arguments)[k].shape;
    return s.ToString(!s.HasDefaultLayout());
  }
  const auto port = [&](const BatchPorts& b) -> const Shape& { return (result ? b.results : b.arguments)[k].shape; };
  const Shape& last = port(m.ports.batches.back());
  std::string dims;
  for (int64_t d = 0; d < last.rank(); ++d) {
    bool same = true, is_batch = true;
    for (const BatchPorts& b : m.ports.batches) {
      same = same && port(b).dim(d) == last.dim(d);
      is_batch = is_batch && port(b).dim(d) == b.batch;
    }
    absl::StrAppend(&dims, d ? "," : "", is_batch ? "batch" : same ? absl::StrCat(last.dim(d)) : "?");
  }
  return absl::StrCat(TextOf(last.type()), "[", dims, "]");
}

std::string PathText(const Port& p) {
  if (p.path == p.name) return "";
  for (char c : p.path)
    if (!absl::ascii_isprint(c) || c == '\\') return "";
  return absl::StrCat(" (", p.path, ")");
}

std::string TypedParameters(const CompiledModel& m, const std::string& separator,
                            const std::function<std::string(const Port&, bool result)>& type, Taken taken) {
  std::string out;
  for (const Port& p : m.ports.arguments)
    if (taken == Taken::kAll || !p.weight) absl::StrAppend(&out, separator, type(p, false), " in_", p.name);
  for (const Port& p : m.ports.results)
    if (p.alias < 0) absl::StrAppend(&out, separator, type(p, true), " out_", p.name);
  return out;
}

std::string TypedNames(const CompiledModel& m) {
  std::string out;
  for (const Port& p : m.ports.arguments) absl::StrAppend(&out, out.empty() ? "" : ", ", "in_", p.name);
  for (const Port& p : m.ports.results)
    if (p.alias < 0) absl::StrAppend(&out, out.empty() ? "" : ", ", "out_", p.name);
  return out;
}

namespace {

// Of the GPU program, if it has one.
std::string HostArenaDefinition(const CompiledModel& m) {
  if (m.report.gpu_host_bytes == 0) return "";
  return absl::StrCat(
      "// The host's page-locked memory that each program has besides, for values that wait there.\n#define ",
      absl::AsciiStrToUpper(m.name), "_GPU_HOST_ARENA_BYTES ((size_t)", m.report.gpu_host_bytes, ")\n");
}

}  // namespace

std::string FillTemplate(std::string text, const CompiledModel& m) {
  const bool slow = m.report.slow_bytes > 0, batch = !m.ports.batches.empty();
  const std::vector<std::pair<std::string, std::string>> values = {
      {"$[", absl::StrCat("__asm__(\"", m.symbols, "_")},
      {"$L[", absl::StrCat("__asm__(\"", SharedSymbolOf(m, ""))},
      {"$]", "\")"},
      {"$NAME", m.name},
      {"$UPPER", absl::AsciiStrToUpper(m.name)},
      {"$LIBRARY", m.library.empty() ? m.name : m.library},
      {"$LIBUPPER", absl::AsciiStrToUpper(m.library.empty() ? m.name : m.library)},
      {"$ENTRIES", EntryList(m)},
      {"$ENTRY", m.entry},
      {"$SYMBOLS", m.symbols},
      {"$VERSION", kKilnVersion},
      {"$ABI", absl::StrCat(KILN_ABI_VERSION)},
      {"$ARRAYS", absl::StrCat(KILN_ARRAYS_VERSION)},
      {"$DEVICES", absl::StrCat(m.devices)},
      {"$ARCHS", absl::StrJoin(m.code.gpu_targets, ", ")},
      {"$GPUARENA", absl::StrCat(m.report.gpu_temp_bytes)},
      {"$GPUHOST", HostArenaDefinition(m)},
      {"$ARENA", absl::StrCat(m.report.temp_bytes)},
      {"$SLOWBYTES", absl::StrCat(m.report.slow_bytes)},
      {"$NARGS", absl::StrCat(m.ports.arguments.size())},
      {"$NRESULTS", absl::StrCat(m.ports.results.size())},
      {"$BATCHPARAM", batch ? "int64_t batch, " : ""},
      {"$BATCHDOC", batch ? "batch, " : ""},
      {"$BATCHVALUE", batch ? "batch" : "0"},
      {"$BATCHTAKEN", batch ? ", std::int64_t batch" : ""},
      {"$BATCHGIVEN", batch ? ", batch" : ""},
      {"$SLOWPARAM", slow ? "kiln_arena slow_arena, " : ""},
      {"$SLOWARG", slow ? "slow_arena, " : ""},
      {"$SLOWVALUE", slow ? "slow_arena" : "{NULL, 0}"},
      {"$COMMPARAM", m.communicates ? ", const kiln_comm* comm" : ""},
      {"$COMMDOC", m.communicates ? ", comm" : ""},
      {"$COMMVALUE", m.communicates ? "comm" : "NULL"},
      {"$CTXSLOW", slow ? "context.slow_arena(), " : ""},
      {"$MOVECOMM", m.communicates ? "      std::swap(comm_, other.comm_);\n" : ""},
      {"$CTXCOMM", m.communicates ? ", context.comm()" : ""},
      {"$ALGEBRA", Describe(m.algebra)},
      {"$ROUNDED", m.keeps_excess ? "where kernels store, compare or convert them" : "in every operation"},
      {"$F16SUMS", HasSumsInF16(m) ? "// Short sums of products of f16 are f16 at the level v4fp16.\n" : ""},
      {"$PASSES", m.pass_changes.empty()
                      ? ""
                      : absl::StrCat("// Of the usual passes the config ", absl::StrJoin(m.pass_changes, ", "), ".\n")},
      {"$SUBNORMALS", m.flush_subnormals ? "count as zero" : "are kept"},
      {"$POOLDOC", m.threads == 1 ? "ignored: the library was built for one thread"
                                  : "NULL for the calling thread alone, a pool made here, or the host's own, as three "
                                    "functions"}};
  return absl::StrReplaceAll(text, values);
}

}  // namespace kiln
