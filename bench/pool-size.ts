/** Preloaded for `--model`: sets the size of the pools of mysql2 from the query of the URL. */
import { createRequire } from 'node:module'

const connectionLimit = Number(new URL(import.meta.url).search.slice(1))

// Changes the object of the module, so that later imports have this function.
const mysql2: typeof import('mysql2') = createRequire(import.meta.url)('mysql2')
const { createPool } = mysql2
mysql2.createPool = ((options: object) =>
  createPool({ ...options, connectionLimit, maxIdle: connectionLimit - 1 })) as typeof createPool
