/** What this shop knows and the service does not: names for numbers, and words for people. */
import type { PetStatus } from '@petstore-catalogue/petstore/client'

/** The shop's name, in the header and in the title of the window. */
export const shopName = 'Petstore'

/** What the place is, in one line. */
export const tagline = 'Dogs, cats, birds, small pets and fish: come and find a friend.'

/** Where customers get a key, if the shop has none of its own for them. */
export const howToGetKey = 'No key yet? You get one at our counter.'

/** Where customers ask for an animal; leave either empty if there is none. */
export const mail: string = 'hello@petstore.example'
export const telephone: string = '+1 555 0100'

/** What there is a picture of in `animals.svg`. */
export type Species = 'dog' | 'cat' | 'bird' | 'hamster' | 'fish' | 'paw'

export interface Category {
  name: string
  species: Species
}

/**
 * The categories by their numbers, which are all that the service keeps. These are the ones of the
 * service's example animals: put your own in their place.
 */
export const categories: ReadonlyMap<bigint, Category> = new Map([
  [1n, { name: 'Dog', species: 'dog' }],
  [2n, { name: 'Cat', species: 'cat' }],
  [3n, { name: 'Bird', species: 'bird' }],
  [4n, { name: 'Small pet', species: 'hamster' }],
  [5n, { name: 'Fish', species: 'fish' }],
])

/** What stands for all categories that the shop has no name for. */
export const otherCategory: Category = { name: 'Other pet', species: 'paw' }

/** The category with this number. */
export const categoryOf = (id: bigint): Category => categories.get(id) ?? otherCategory

/** How the shop says whether an animal can be had, in the order of its choices. */
export const statusNames: Readonly<Record<PetStatus, string>> = {
  available: 'Available',
  pending: 'Reserved',
  sold: 'Sold',
}

/** The same of one animal, in a sentence that begins with its name. */
export const statusSentences: Readonly<Record<PetStatus, string>> = {
  available: 'is looking for a home.',
  pending: 'is reserved at the moment.',
  sold: 'has found a home.',
}
