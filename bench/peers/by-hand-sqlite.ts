/** The reference peer on SQLite: node:http and statements that are prepared once. */
import { serve } from './by-hand.ts'
import { sqliteStore } from './sqlite-store.ts'

serve(sqliteStore)
