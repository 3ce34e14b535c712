/* fuzz_replay.c - runs a fuzz target once over each file of the folders and files given, so that
 * corpora are replayed by `meson test` under any compiler. */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t size = 0;
    size_t got;
    uint8_t chunk[4096];

    if (!file) {
        perror(path);
        return -1;
    }
    while ((got = fread(chunk, 1, sizeof(chunk), file)) > 0) {
        uint8_t *grown = realloc(data, size + got);

        if (!grown)
            abort();
        data = grown;
        memcpy(data + size, chunk, got);
        size += got;
    }
    (void)fclose(file); /* was only read */
    if (!data)
        data = malloc(1);
    (void)LLVMFuzzerTestOneInput(data, size); /* asserts by itself */
    free(data);
    return 1;
}

static int replay(const char *path)
{
    struct stat info;
    struct dirent *entry;
    int n = 0;
    DIR *dir;

    if (stat(path, &info) == 0 && !S_ISDIR(info.st_mode))
        return replay_file(path);
    dir = opendir(path);
    if (!dir) {
        perror(path);
        return -1;
    }
    while ((entry = readdir(dir)) != NULL) {
        char file[4096];

        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
        if (replay_file(file) > 0)
            n++;
    }
    (void)closedir(dir); /* was only read */
    return n;
}

int main(int argc, char **argv)
{
    int n = 0;

    for (int i = 1; i < argc; i++) {
        int got = replay(argv[i]);

        if (got < 0)
            return 1;
        n += got;
    }
    if (n == 0) {
        (void)fprintf(stderr, "no inputs to replay\n");
        return 1;
    }
    (void)printf("replayed %d inputs\n", n);
    return 0;
}
