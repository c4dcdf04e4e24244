// Devices as ranks of MPI, where there is no MPI: errors say what is missing. ./dev mpi tests the rest.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "devices.h"

namespace {

int failures = 0;
void Expect(bool ok, const std::string& what) {
  if (!ok) std::printf("FAILED: %s\n", what.c_str()), ++failures;
}

std::string ErrorWith(const char* library) {
  setenv("KILN_MPI", library, 1);
  const devices::Mpi mpi;
  Expect(!mpi.ok() && mpi.comm() == nullptr && mpi.status().code == DEVICES_COMMUNICATION, library);
  return mpi.error();
}

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

int main() {
  const std::string none = ErrorWith("/nowhere/libmpi.so.40"), other = ErrorWith("libm.so.6");
  Expect(Has(none, "there is no Open MPI (/nowhere/libmpi.so.40:"), none);
  Expect(Has(other, "the MPI library is not Open MPI 4: it lacks MPI_Initialized"), other);
  struct kiln_mpi* mpi = nullptr;
  char error[16];
  Expect(devices_mpi_open(&mpi, nullptr, error, sizeof error) == DEVICES_COMMUNICATION, "an error cut short");
  Expect(devices_mpi_open(&mpi, nullptr, nullptr, 0) == DEVICES_COMMUNICATION && !mpi, "nobody asks for the error");
  devices_mpi_close(mpi);
  float x[16] = {}, y[16];
  devices::Context context;
  context.set_comm(devices::Mpi().comm());
  Expect(devices::run(context, x, y).code == DEVICES_NULL_POINTER, "a run without a comm");
  return failures != 0;
}
