/** How tRPC writes inputs and outputs: devalue, which keeps bigints. Server and client share it. */
import { parse, stringify } from 'devalue'

export const transformer = {
  serialize: (value: unknown): string => stringify(value),
  /** Throws SyntaxError for anything that `serialize` cannot have written. */
  deserialize(text: string): unknown {
    try {
      return parse(text)
    } catch (cause) {
      throw new SyntaxError('The input is not in the encoding of devalue', { cause })
    }
  },
}
