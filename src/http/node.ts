/**
 * Node's own HTTP. An `import` of a module of Node reads all that it exports, and `WebSocket`, which
 * `node:http` exports too, brings a whole HTTP client with it: 9 MB and a tenth of a start's work, for
 * nothing. What is got this way is read when it is used.
 * https://nodejs.org/api/process.html#processgetbuiltinmoduleid
 */
export const http = process.getBuiltinModule('node:http')
