/* finder.h - what device nodes are at paths of this host, for one pod after the other.
 *
 * After the first few paths a directory is read as a whole, and only what is in it is looked at: a
 * plugin may name 50,000 paths, and hardly any machine has so many device nodes. */
#ifndef DV_POD_FINDER_H
#define DV_POD_FINDER_H

struct dv_arena;
struct dv_finder;
struct dv_identity_host;

/* Makes a finder in `arena`. What it has read of the file system counts until dv_finder_fini. */
struct dv_finder *dv_finder_new(struct dv_arena *arena);
void dv_finder_fini(struct dv_finder *finder);
const struct dv_identity_host *dv_finder_host(const struct dv_finder *finder);

#endif
