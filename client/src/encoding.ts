/** What the client and the service must agree on: how values travel through tRPC, and how many calls at once. */
import { stringify, unflatten } from 'devalue'

/** Calls in one tRPC batch at most. */
export const MAX_BATCH = 20

/**
 * Bytes that an input may take in a batch, so that a full one fits: queries into an address of 16 KiB
 * with the other headers, mutations into a body of 64 KiB.
 */
export const MAX_SHARE = { query: 512, mutation: 3_200 }

/** How tRPC writes inputs and outputs: devalue, which keeps bigints and dates. */
export const transformer = {
  serialize: (value: unknown): string => stringify(value),
  /** Throws SyntaxError for anything that `serialize` cannot have written. */
  deserialize(text: string): unknown {
    try {
      const values: unknown = JSON.parse(text)
      if (Array.isArray(values) && values.some(isOddBigint)) throw new TypeError('Not a bigint')
      return unflatten(values as Parameters<typeof unflatten>[0])
    } catch (cause) {
      throw new SyntaxError('The input is not in the encoding of devalue', { cause })
    }
  },
}

// devalue hands what stands there to BigInt(), which takes `true`, "" and "0x10" too.
function isOddBigint(value: unknown): boolean {
  if (!Array.isArray(value) || value[0] !== 'BigInt') return false
  return typeof value[1] !== 'string' || !/^-?\d+$/.test(value[1])
}
