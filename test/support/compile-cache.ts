/** The code that Node has compiled, which the hundreds of processes of the tests share. */
import { tmpdir } from 'node:os'
import path from 'node:path'

process.env.NODE_COMPILE_CACHE ||= path.join(tmpdir(), 'petstore-compiled')
