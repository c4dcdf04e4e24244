# Prints "file function" for each switch over opcodes that has a `default:`.
function leave() {
  if (opcodes[depth] && falls[depth]) print FILENAME, name
  depth--
}
FNR == 1 { depth = 0; name = "" }
{
  match($0, /^ */); indent = RLENGTH
  # Functions of a namespace begin at the margin, those of a class two columns in.
  if (indent <= 2 && !/^ *#/ && /[a-zA-Z_>&*] [a-zA-Z_:~]+\(/ && !/^ *(return|if|for|while|switch|else|case)/ && !/;$/) {
    match($0, /[a-zA-Z_:~]+\(/); name = substr($0, RSTART, RLENGTH - 1)
  }
  while (depth > 0 && indent <= column[depth] && /^ *\}/) leave()
  if (/^ *switch \(/) { depth++; column[depth] = indent; opcodes[depth] = falls[depth] = 0 }
  if (depth > 0 && /^ *case Opcode::/) opcodes[depth] = 1
  if (depth > 0 && /^ *default:/) falls[depth] = 1
}
