/* plugin_identity.h - who is at the other end of a socket: its user, groups, unit and executable.
 */
#ifndef DV_PLUGIN_IDENTITY_H
#define DV_PLUGIN_IDENTITY_H

struct dv_arena;
struct dv_policy_peer;
struct dv_stream;

/* Never NULL; what is not known is left out. Reads a few files of /proc. */
const struct dv_policy_peer *dv_peer_identify(const struct dv_stream *stream,
                                              struct dv_arena *arena);

#endif
