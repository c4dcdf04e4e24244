#!/bin/sh
# No function above 100 lines, no file above 500.
set -eu
find aot codegen compiler examples runtime_min tests -name '*.cc' -o -name '*.h' -o -name '*.c' -o -name '*.bzl' | sort |
  xargs awk '
    function report(what, lines, most) { if (lines > most) { print what ": " lines " lines, at most " most; bad = 1 } }
    function begin(at, text) { if (!start[at]) { start[at] = first[at] ? first[at] : FNR; name[at] = text } }
    FNR == 1 { if (file != "") report(file, lines, 500); file = FILENAME; start[0] = start[2] = first[0] = first[2] = 0 }
    { lines = FNR; match($0, /^ */); indent = RLENGTH }
    # Functions of a namespace begin at the margin, those of a class two columns in; a signature may go on for lines.
    indent > 2 && /\) (const )?\{$/ { for (at = 0; at <= 2; at += 2) if (first[at]) begin(at, signature[at]) }
    indent == 0 || indent == 2 {
      first[indent] = 0
      if (/\($|,$/ && /[a-zA-Z_>] [a-zA-Z_:]+\(/ && !/^ *(return|if|for|while|RETURN)/) { first[indent] = FNR; signature[indent] = $0 }
      if (/[){a-z] \{$/ && !/^ *(inline |constexpr )*(namespace|class|struct|enum|union|extern "C"|for|if|while|switch|else|do|\} )/)
        begin(indent, $0)
      if (/^ *\}/ && start[indent]) {
        sub(/^ */, "", name[indent])
        report(FILENAME ":" start[indent] ": " name[indent], FNR - start[indent] + 1, 100); start[indent] = 0 }
    }
    END { report(file, lines, 500); if (!bad) print "sizes hold"; exit bad }'
