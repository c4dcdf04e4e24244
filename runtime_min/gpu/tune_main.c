// main() of a tuning program. Compiled to bitcode; kiln renames kiln_model_*.
#include <stdint.h>

int32_t kiln_model_tune(int32_t argc, char** argv);

int main(int argc, char** argv) { return kiln_model_tune(argc, argv); }
