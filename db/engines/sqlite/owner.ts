/** The owner of the one connection: while a session has a transaction, the other sessions wait. */
import type { Deadline } from '../../deadline.ts'

export class Owner {
  /** The session with an open transaction, and what resolves at its end. */
  #owner: { session: object; end: PromiseWithResolvers<void> } | undefined

  owns(session: object): boolean {
    return this.#owner?.session === session
  }

  /** Returns whether another session has a transaction. */
  mustWait(session: object): boolean {
    return this.#owner !== undefined && this.#owner.session !== session
  }

  /** Resolves when the transaction ends, after which another may begin at once. Throws the reason of the deadline. */
  async ended(deadline: Deadline | undefined): Promise<void> {
    const end = this.#owner?.end.promise
    if (end) await (deadline ? deadline.race(end) : end)
  }

  /** Takes note of the session that has a transaction now; undefined if none has. */
  set(session: object | undefined): void {
    if (this.#owner?.session === session) return
    this.#owner?.end.resolve()
    this.#owner = session && { session, end: Promise.withResolvers() }
  }
}
