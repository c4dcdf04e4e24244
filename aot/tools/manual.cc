// kiln(1) and the completion of its command line.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "aot/package/manifest.h"
#include "aot/tools/help.h"

namespace kiln {
namespace {

// Plain text as troff reads it: a hyphen that is typed, no escapes, no requests.
std::string Roff(const std::string& text) {
  const std::string out = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  return !out.empty() && (out[0] == '.' || out[0] == '\'') ? "\\&" + out : out;
}

constexpr char kDescription[] = R"(.SH DESCRIPTION
kiln compiles a program of JAX, TensorFlow or PyTorch/XLA ahead of time into a static library with a typed C++ header
and a C header. A program that links the library needs no framework, no Python and no runtime library.
.PP
.I MODULE
or
.I FILE
is a program; what it is follows from its content: HLO text, an HLO proto (binary or text), StableHLO text, or StableHLO
portable bytecode.
.RB \(dq \- \(dq
is the standard input.
.SH COMMANDS
)";

constexpr char kRest[] = R"(.SH EXIT STATUS
0 on success, 1 on wrong input (with one error that has a place), 2 on wrong usage.
.SH ENVIRONMENT
.TP
.B CC
The C compiler that links programs of
.BR tune ,
default
.BR cc ;
if it is set, it links those of
.B run
and
.B diff
too.
.TP
.B KILN_CACHE
The folder in which
.B compile
keeps products where
.B \-\-cache
does not say; none if it is not set.
.TP
.B KILN_CACHE_LIMIT
What it may take, as 500M or 5G.
.TP
.B PATH
Where
.B ptxas
of the CUDA Toolkit is looked for, which targets with machine code for GPUs need.
.SH EXAMPLES
.nf
kiln compile mlp.mlir \-\-name mlp \-o build
g++ app.cc \-Ibuild build/libmlp.a $(pkg\-config \-\-libs kiln) \-o app
kiln diff mlp.mlir \-\-rtol 1e\-5 \-\-atol 1e\-6
.fi
)";

std::string SectionOf(const Command& c) {
  std::string out = absl::StrCat(".SS ", Roff(UsageOf(c)), "\n", Roff(absl::StrCat(c.summary, " ", c.details)), "\n");
  for (const Option& o : c.options) {
    absl::StrAppend(&out, ".TP\n");
    const std::string letter = o.letter ? absl::StrCat("\\fB\\-", std::string(1, o.letter), "\\fR, ") : "";
    const std::string value = o.value ? absl::StrCat(" \\fI", Roff(o.value), "\\fR") : "";
    absl::StrAppend(&out, letter, "\\fB\\-\\-", Roff(o.name), "\\fR", value, "\n", Roff(o.help),
                    o.takes == Takes::kAny ? " (may be repeated)" : "", ".\n");
  }
  return out;
}

}  // namespace

std::string ManualPage() {
  std::string out = absl::StrCat(
      ".TH KILN 1 \"\" \"kiln ", kKilnVersion,
      "\" \"User Commands\"\n.SH NAME\nkiln \\- ahead\\-of\\-time compiler from HLO programs to static libraries\n"
      ".SH SYNOPSIS\n.B kiln\n.I COMMAND\n.RI [ ARGUMENT ]...\n",
      kDescription);
  for (const Command& c : AllCommands()) out += SectionOf(c);
  return out + kRest;
}

std::string BashCompletion() {
  std::vector<std::string> names, cases;
  for (const Command& c : AllCommands()) {
    names.emplace_back(c.name);
    std::string options = "--help";
    for (const Option& o : c.options) absl::StrAppend(&options, " --", o.name);
    cases.push_back(absl::StrCat("    ", c.name, ") options='", options, "' ;;\n"));
  }
  return absl::StrCat(
      "# bash completion of kiln\n_kiln() {\n  local word=${COMP_WORDS[COMP_CWORD]} options=\n"
      "  if [ \"$COMP_CWORD\" = 1 ]; then\n    mapfile -t COMPREPLY < <(compgen -W '",
      absl::StrJoin(names, " "),
      " help --help --version' -- \"$word\")\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n", absl::StrJoin(cases, ""),
      "    help) options='", absl::StrJoin(names, " "),
      "' ;;\n  esac\n  case $word in\n    -*) mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\") ;;\n"
      "    *) [ \"${COMP_WORDS[1]}\" != help ] || mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\") ;;\n"
      "  esac\n}\ncomplete -o default -o bashdefault -F _kiln kiln\n");
}

}  // namespace kiln
