#include "base/defs.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/cli.h"

size_t dv_cli_distance(dv_str a, dv_str b)
{
    size_t row[48]; /* longer words are compared as far as this */
    size_t n = dv_size_min(b.n, DV_COUNT(row) - 1);

    for (size_t k = 0; k <= n; k++)
        row[k] = k;
    for (size_t i = 0; i < a.n; i++) {
        size_t diagonal = row[0];

        row[0] = i + 1;
        for (size_t k = 0; k < n; k++) {
            size_t next =
                dv_size_min(dv_size_min(row[k], row[k + 1]) + 1, diagonal + (a.p[i] != b.p[k]));

            diagonal = row[k + 1];
            row[k + 1] = next;
        }
    }
    return row[n];
}
