/** What a process is composed of, beside its configuration. */
import type { ClientTimeouts } from '../http/server.ts'
import type { Resources } from '../procedure/resources.ts'

export interface Composition {
  /** Loads the resources to serve. */
  loadResources(): Promise<Resources>
  /** A creation on REST, which the start-up text shows to a newcomer. */
  firstRequest: { path: string; body: string }
  /** The timeouts of clients, where they differ from the defaults. */
  clientTimeouts?: ClientTimeouts
}
