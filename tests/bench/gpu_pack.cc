// Programs for a machine with a GPU: each holds a model for the CPU and for sm_80, sm_90 and sm_100, and compares both.
//
// usage: gpu_pack OUT_DIR CHECK_DIR [--table FILE.md] MODULE...
// For each module: compiles it, generates the C program that knows its arrays, builds it with cc (optimised, libstdc++
// not needed), and starts it once on this machine, where it must end well: without a GPU it runs on the CPU and says
// why. OUT_DIR gets the programs and run.sh; nothing there needs kiln or a compiler. --table writes sizes and build
// times.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "aot/compile.h"
#include "compiler/base/text.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/import/import.h"

namespace kiln {
namespace {

std::string NameOf(const std::string& path) {
  std::vector<std::string> parts = absl::StrSplit(path, '/');
  std::string file = parts.back();
  file = file.substr(0, file.rfind('.'));
  return CIdentifier(file == "module" && parts.size() > 1 ? parts[parts.size() - 2] : file);
}

std::string Ports(const std::vector<Port>& ports) {
  std::string out;
  for (const Port& p : ports)
    absl::StrAppend(&out, "  {", p.shape.ByteSize(), ", ", InfoOf(p.shape.type()).proto, ", ", p.alias, "},\n");
  return out.empty() ? "  {0, 0, -1},\n" : out;
}

std::string ProgramText(const CompiledModel& m) {
  const std::string& n = m.name;
  std::string out = absl::StrCat(
      "#include \"", n, "_c.h\"\n#include \"check.h\"\n\nstatic const struct pack_port arguments[] = {\n",
      Ports(m.ports.arguments), "};\nstatic const struct pack_port results[] = {\n", Ports(m.ports.results),
      "};\n\nstatic int32_t run(void* const* a, void* const* r, void* arena, const void* comm) {\n  (void)comm;\n"
      "  return ",
      n, "_run(a, r, (kiln_arena){arena, ", m.report.temp_bytes, "}, NULL", m.communicates ? ", comm" : "",
      ");\n}\n\nint main(int argc, char** argv) {\n  struct pack_model model = {\"", n, "\", ",
      m.ports.arguments.size(), ", ", m.ports.results.size(), ", arguments, results, ", m.report.temp_bytes, ", ",
      m.devices, ", run};\n");
  std::vector<std::pair<const char*, const char*>> functions = {
      {"create", "_gpu_create"},       {"destroy", "_gpu_destroy"}, {"run_gpu", "_gpu_run"},
      {"wait", "_gpu_wait"},           {"malloc", "_gpu_malloc"},   {"free", "_gpu_free"},
      {"to_device", "_gpu_to_device"}, {"to_host", "_gpu_to_host"}, {"set_graphs", "_gpu_set_graphs"},
      {"error", "_gpu_error"}};
  if (m.communicates)
    functions.insert(functions.end(), {{"set_comm", "_gpu_set_comm"},
                                       {"world_create", "_world_create"},
                                       {"world_comm", "_world_comm"},
                                       {"world_abort", "_world_abort"}});
  for (const auto& [field, function] : functions)
    absl::StrAppend(&out, "  *(void**)&model.", field, " = (void*)", n, function, ";\n");
  return out + "  return pack_check(&model, argc, argv);\n}\n";
}

// What an error says, without where it was found.
std::string Reason(const std::string& problem) {
  constexpr absl::string_view kMark = "error: ";
  const size_t at = problem.find(std::string(kMark));
  return problem.substr(at == problem.npos ? 0 : at + kMark.size());
}

struct Row {
  std::string name;
  int64_t kernels = 0, archive = 0, program = 0;
  double ms = 0;
  std::string started, problem;
};

absl::Status Pack(const std::string& path, const std::string& out, const std::string& checks, Row* row) {
  absl::StatusOr<std::unique_ptr<Module>> module = LoadModule(path);
  if (!module.ok()) {  // sizes left open
    ImportOptions import;
    import.dim = 4;
    module = LoadModule(path, import);
  }
  RETURN_IF_ERROR(module.status());
  RETURN_IF_ERROR(SettleDeviceCounts(module->get()));
  CompileOptions o;
  o.model.name = row->name;
  o.cpu.levels = {"v3"};
  o.gpu.targets = {"sm_80", "sm_90", "sm_100"};
  o.gpu.transport = GpuOptions::Transport::kHost;  // the machine may have one GPU for all devices, which NCCL refuses
  ASSIGN_OR_RETURN(CompiledModel m, Compile(*std::move(module), o));
  row->kernels = m.report.kernels;
  row->archive = static_cast<int64_t>(m.code.archive.size());
  row->ms = m.report.compile_ms;
  const std::string work = out + "/build";
  mkdir(work.c_str(), 0777);
  const std::string stem = work + "/" + m.name, program = out + "/" + m.name;
  RETURN_IF_ERROR(WriteFile(stem + ".a", m.code.archive));
  RETURN_IF_ERROR(WriteFile(stem + "_c.h", m.code.c_header));
  RETURN_IF_ERROR(WriteFile(stem + "_main.c", ProgramText(m)));
  const std::string build = absl::StrCat("cc -std=gnu11 -O2 -s -I", work, " -I", checks, " ", stem, "_main.c ", checks,
                                         "/check.c ", stem, ".a -o ", program, " -Wl,--gc-sections -lm -lpthread -ldl");
  const int built = std::system(build.c_str());
  for (const char* file : {".a", "_c.h", "_main.c"}) unlink((stem + file).c_str());
  if (built != 0) return InvalidArgument("its program cannot be built");
  struct stat s;
  if (stat(program.c_str(), &s) == 0) row->program = s.st_size;
  std::FILE* run = popen((program + " --repeat=1 2>&1").c_str(), "r");
  if (!run) return Internal("its program cannot be started");
  char line[1024] = "";
  while (std::fgets(line, sizeof line, run)) row->started = std::string(absl::StripTrailingAsciiWhitespace(line));
  if (pclose(run) != 0) return InvalidArgument("its program fails: ", row->started);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: gpu_pack OUT_DIR CHECK_DIR [--table FILE.md] MODULE...\n");
    return 2;
  }
  const std::string out = argv[1], checks = argv[2];
  std::string table_file;
  mkdir(out.c_str(), 0777);
  std::vector<Row> rows;
  int failed = 0;
  int64_t all = 0;
  for (int k = 3; k < argc; ++k) {
    if (std::string(argv[k]) == "--table" && k + 1 < argc) {
      table_file = argv[++k];
      continue;
    }
    Row row;
    row.name = NameOf(argv[k]);
    const absl::Status s = Pack(argv[k], out, checks, &row);
    if (!s.ok()) {
      row.problem = std::string(s.message());
      ++failed;
    }
    all += row.program;
    std::printf("%-32s %8.0f ms %9lld bytes  %s\n", row.name.c_str(), row.ms, static_cast<long long>(row.program),
                (s.ok() ? row.started : row.problem).substr(0, 200).c_str());
    std::fflush(stdout);
    rows.push_back(std::move(row));
  }
  rmdir((out + "/build").c_str());
  const std::string script =
      "#!/bin/sh\n# Runs every program of the pack; each compares GPU and CPU and prints its times.\n"
      "cd \"$(dirname \"$0\")\" || exit 1\npassed=0 failed=0\n"
      "for p in ./*; do\n  case $p in ./run.sh) continue ;; esac\n  [ -x \"$p\" ] || continue\n"
      "  if \"$p\" --need-gpu \"$@\"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi\ndone\n"
      "echo \"$passed passed, $failed failed\"\n[ $failed = 0 ]\n";
  if (absl::Status s = WriteFile(out + "/run.sh", script); !s.ok()) return 1;
  chmod((out + "/run.sh").c_str(), 0755);
  if (!table_file.empty()) {
    std::string table =
        "# GPU programs of a set of models\n\nMade by `./dev gpu-pack`: each model for x86-64-v3 and for sm_80, sm_90 "
        "and sm_100 in one "
        "archive, built without a GPU. Kernels count both targets; the program is linked and stripped. Times depend on "
        "the "
        "machine; sizes do not.\n\n| model | kernels | archive bytes | program bytes | build ms "
        "|\n|---|---|---|---|---|\n";
    for (const Row& r : rows)
      table += r.problem.empty()
                   ? absl::StrFormat("| %s | %d | %d | %d | %.0f |\n", r.name, r.kernels, r.archive, r.program, r.ms)
                   : absl::StrCat("| ", r.name, " | ", Reason(r.problem), " | | | |\n");
    if (absl::Status s = WriteFile(table_file, table); !s.ok()) return 1;
  }
  std::printf("%zu programs, %.1f MB; %d failed\n", rows.size() - static_cast<size_t>(failed),
              static_cast<double>(all) / 1e6, failed);
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) { return kiln::Main(argc, argv); }
