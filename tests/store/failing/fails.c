/* Makes the n-th call fail that opens, writes, syncs or renames a file under a folder.
   Loaded in front of the C library, so that what SQLite does fails as what Python does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static char under[PATH_MAX];
static long left = -1, seen = 0;
static int error_number = EIO;

void fails_at(const char *folder, long n, int code) {
    strncpy(under, folder, sizeof under - 1);
    left = n;
    error_number = code;
    seen = 0;
}

long fails_seen(void) { return seen; }

static int is_due(const char *path) {
    if (left < 0 || !path || strncmp(path, under, strlen(under))) return 0;
    seen++;
    if (seen == left) {
        errno = error_number;
        return 1;
    }
    return 0;
}

static int is_due_of(int file) {
    char link[64], path[PATH_MAX];
    if (left < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return is_due(path);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define MODE mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); }

int open(const char *path, int flags, ...) { MODE return is_due(path) ? -1 : NEXT(open)(path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return is_due(path) ? -1 : NEXT(open64)(path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE return is_due(path) ? -1 : NEXT(openat)(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE return is_due(path) ? -1 : NEXT(openat64)(at, path, flags, mode); }
ssize_t write(int file, const void *data, size_t size) { return is_due_of(file) ? -1 : NEXT(write)(file, data, size); }
ssize_t pwrite(int file, const void *data, size_t size, off_t at) { return is_due_of(file) ? -1 : NEXT(pwrite)(file, data, size, at); }
ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) { return is_due_of(file) ? -1 : NEXT(pwrite64)(file, data, size, at); }
int fsync(int file) { return is_due_of(file) ? -1 : NEXT(fsync)(file); }
int fdatasync(int file) { return is_due_of(file) ? -1 : NEXT(fdatasync)(file); }
int ftruncate64(int file, off64_t size) { return is_due_of(file) ? -1 : NEXT(ftruncate64)(file, size); }
int rename(const char *from, const char *to) { return is_due(from) ? -1 : NEXT(rename)(from, to); }
