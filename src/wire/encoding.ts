/**
 * The protocol that the client and the service share: the encoding of tRPC's values, and the size
 * of a batch.
 */
import { stringify, unflatten } from 'devalue'

/** Maximum number of calls in a tRPC batch. */
export const MAX_BATCH = 20

/**
 * Maximum bytes of an input in a batch. A full batch then fits into the limits of a request: 16 KiB for
 * the URL of queries and the other headers, 64 KiB for the body of mutations.
 */
export const MAX_SHARE = { query: 512, mutation: 3_200 }

/** The transformer of tRPC's inputs and outputs: devalue, which keeps bigints and dates. */
export const transformer = {
  serialize: (value: unknown): string => stringify(value),
  /** Throws SyntaxError for a text that `serialize` cannot return. */
  deserialize(text: string): unknown {
    try {
      const values: unknown = JSON.parse(text)
      if (Array.isArray(values) && values.some(isMalformedBigint))
        throw new TypeError('Not a bigint')
      return unflatten(values as Parameters<typeof unflatten>[0])
    } catch (cause) {
      throw new SyntaxError('The input is not in the encoding of devalue', { cause })
    }
  },
}

// devalue passes the value to BigInt(), which accepts `true`, "" and "0x10" too.
function isMalformedBigint(value: unknown): boolean {
  if (!Array.isArray(value) || value[0] !== 'BigInt') return false
  return typeof value[1] !== 'string' || !/^-?\d+$/.test(value[1])
}
