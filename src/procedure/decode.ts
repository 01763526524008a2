/** The inputs of tRPC, with the limit that REST has by the size of its body. */
import { transformer } from '../../client/src/encoding.ts'
import { MAX_BODY } from '../config/limits.ts'
import { problem } from '../errors/catalogue.ts'

/**
 * Returns the input in devalue's encoding. The encoding has equal values once, so a short text may be a
 * very long input. Throws SyntaxError for other text, and PAYLOAD_TOO_LARGE for more than `MAX_BODY`
 * characters and values.
 */
export function decodeInput(text: string): unknown {
  const input = transformer.deserialize(text)
  if (sizeOf(input, new Map()) > MAX_BODY) throw problem('inputTooLarge')
  return input
}

/** Returns the number of values in a value, and of their characters; Infinity if it contains itself. */
function sizeOf(value: unknown, known: Map<object, number>): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 1
  const before = known.get(value)
  if (before !== undefined) return before
  known.set(value, Number.POSITIVE_INFINITY)
  let size = 1
  for (const inner of Object.values(value)) size += sizeOf(inner, known)
  known.set(value, size)
  return size
}
