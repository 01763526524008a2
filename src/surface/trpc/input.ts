/** The inputs of tRPC's calls. */

import { MAX_BODY } from '../../config/product.ts'
import { problem } from '../../errors/problem.ts'
import { transformer } from '../../wire/encoding.ts'

/**
 * Returns the input of a call. devalue writes equal values only once, so a short text may stand for a huge
 * value: its size is checked after decoding. Throws PARSE_ERROR for what is not in the encoding, and
 * PAYLOAD_TOO_LARGE for more than `MAX_BODY` characters and values, the limit that REST has by the size of
 * its body.
 */
export function decodeInput(encoded: unknown): unknown {
  if (typeof encoded !== 'string') throw problem('plainInput')
  try {
    const input = transformer.deserialize(encoded)
    if (sizeOf(input, new Map()) <= MAX_BODY) return input
  } catch (cause) {
    throw problem('malformed', cause) // one that is nested too deeply has no size
  }
  throw problem('inputTooLarge')
}

/** Returns the number of values in a value, and of their characters; Infinity if it contains itself. */
function sizeOf(value: unknown, known: Map<object, number>): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 1
  const before = known.get(value)
  if (before !== undefined) return before
  known.set(value, Number.POSITIVE_INFINITY)
  let size = 1
  for (const inner of valuesIn(value)) size += sizeOf(inner, known)
  known.set(value, size)
  return size
}

function valuesIn(value: object): Iterable<unknown> {
  if (value instanceof Map) return [...value.keys(), ...value.values()]
  return value instanceof Set ? value : Object.values(value)
}
