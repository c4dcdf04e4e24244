# what: a C++ program by hand, with the manual page and completion in their places
# packages: cmake g++ make pkg-config
# kiln: deb
# expects: 7
# within: 120
kiln --version
zcat /usr/share/man/man1/kiln.1.gz | grep -q 'kiln compile \[MODULE\]'
bash -c '. /usr/share/bash-completion/completions/kiln; complete -p kiln'
kiln compile /examples/digits/digits.mlir --name digits -o build
g++ -std=c++17 -O2 -Wall -Wextra -Werror -Ibuild /examples/digits/digits_main.cc build/libdigits.a -lm -lpthread -o app
kiln diff /examples/digits/digits.mlir --atol 1e-6 --rtol 1e-5
./app /examples/digits/digit_7.pgm
