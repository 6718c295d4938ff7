// Four threads read a table that the first thread filled; a child reads a mapped file.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <numeric>
#include <thread>
#include <vector>

static const size_t COUNT = 1 << 18;

static long read_all(const std::vector<long> &table, size_t from) {
  long sum = 0;
  for (size_t at = from; at < COUNT; at += 8) sum += table[at];
  return sum;
}

static int read_file(const char *name) {
  int file = open(name, O_RDONLY);
  off_t size = lseek(file, 0, SEEK_END);
  auto *data = static_cast<unsigned char *>(mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0));
  return std::accumulate(data, data + size, 0L) != 0 ? 0 : 1;
}

int main(int, char **words) {
  std::vector<long> table(COUNT, 1); // TABLE
  std::vector<long> sums(4 * 8);
  std::vector<std::thread> threads;
  for (size_t part = 0; part < 4; part++)
    threads.emplace_back([&, part] { sums[part * 8] = read_all(table, part); });
  for (auto &thread : threads) thread.join();
  if (fork() == 0) _exit(read_file(words[1]));
  int status = 0;
  wait(&status);
  std::printf("%ld %d\n", std::accumulate(sums.begin(), sums.end(), 0L), status);
}
