/** What the process is put together from, beside its configuration. */
import type { Patience } from '../http/server/server.ts'
import type { Resources } from '../procedure/resources.ts'

export interface Composition {
  /** Loads what is served, in the processes that serve. */
  loadResources(): Promise<Resources>
  /** A creation that the start shows to a newcomer, as the path and the body of REST. */
  firstRequest: { path: string; body: string }
  /** How long clients have, where that is not as usual. It does not reach workers. */
  patience?: Patience
}
