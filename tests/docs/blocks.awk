# A page's blocks as files: those with file=NAME under that name, and with -v run=1 blocks of commands as run_001.sh and so on.
/^```/ && !inside {
  inside = 1; file = ""
  if (match($0, /file=[^ ]+/)) file = substr($0, RSTART + 5, RLENGTH - 5)
  else if (run && $0 ~ /^```sh run$/) file = sprintf("run_%03d.sh", ++runs)
  if (file != "") printf "" > file
  next
}
/^```/ { inside = 0; if (file != "") close(file); next }
inside && file != "" { print > file }
