/** Loaded before the service, for `--model`: makes the pools of mysql2 as large as the URL's query says. */
import { createRequire } from 'node:module'

const connectionLimit = Number(new URL(import.meta.url).search.slice(1))

// The module's own object: those who import it later see what is put here.
const mysql2: typeof import('mysql2') = createRequire(import.meta.url)('mysql2')
const { createPool } = mysql2
mysql2.createPool = ((options: object) =>
  createPool({ ...options, connectionLimit, maxIdle: connectionLimit - 1 })) as typeof createPool
