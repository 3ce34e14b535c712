#include "support/scratch.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/dvtest.h"

static void make_under(const char *parent, const char *name, char *path, size_t size)
{
    assert_true((size_t)snprintf(path, size, "%s/davit-%s-XXXXXX", parent, name) < size);
    assert_non_null(mkdtemp(path));
}

void scratch_make(const char *name, char *path, size_t size)
{
    make_under("/tmp", name, path, size);
}

void scratch_make_in_memory(const char *name, char *path, size_t size)
{
    make_under(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", name, path, size);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)type;
    (void)ftw;
    return remove(path);
}

void scratch_remove(const char *path)
{
    assert_int_equal(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}
