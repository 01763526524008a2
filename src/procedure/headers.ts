/** The headers of a request, as procedures and middlewares read them. */

/**
 * Headers that can only be read. `Authorization` is not among those of procedures: it has the API key. The token of a
 * user has a header of its own, which `access` of a base procedure names (meta.ts).
 */
export class RequestHeaders {
  readonly #sent: Readonly<Record<string, string | string[] | undefined>>

  readonly #hasAuthorization: boolean

  /** The names of `sent` are in lower case. */
  constructor(
    sent: Readonly<Record<string, string | string[] | undefined>>,
    hasAuthorization = false,
  ) {
    this.#sent = sent
    this.#hasAuthorization = hasAuthorization
  }

  /** Returns a header, as `Headers.get` does: null if the request has none with this name. */
  get(name: string): string | null {
    const key = name.toLowerCase()
    if (key === 'authorization' && !this.#hasAuthorization) return null
    if (!Object.hasOwn(this.#sent, key)) return null
    const value = this.#sent[key]
    return value === undefined ? null : String(value)
  }
}
