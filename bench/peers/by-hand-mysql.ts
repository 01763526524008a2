/** The reference peer on MySQL: node:http and prepared statements of mysql2. */
import { serve } from './by-hand.ts'
import { mysqlStore } from './mysql-store.ts'

serve(mysqlStore)
