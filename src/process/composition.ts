/** What a process is composed of, beside its configuration. */
import type { Patience } from '../http/server/server.ts'
import type { Resources } from '../procedure/resources.ts'

export interface Composition {
  /** Loads the resources to serve. Only serving processes call it. */
  loadResources(): Promise<Resources>
  /** A creation on REST, which the start-up text shows to a newcomer. */
  firstRequest: { path: string; body: string }
  /** Timeouts for clients, where they differ from the defaults. Workers always have the defaults. */
  patience?: Patience
}
