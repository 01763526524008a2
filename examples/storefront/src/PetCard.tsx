/** An animal as the catalogue shows it. */
import type { Pet, PetStatus } from '@petstore-catalogue/petstore/client'
import { Portrait } from './Portrait.tsx'
import { type Filter, links } from './route.ts'
import { type Category, categoryOf, statusNames } from './shop.ts'

interface Props {
  pet: Pet
  /** To come back to. */
  filter: Filter
}

export function PetCard({ pet, filter }: Props) {
  return (
    <a className={`card ${pet.status}`} href={links.pet(pet.id, filter)}>
      <CardContent name={pet.name} category={categoryOf(pet.categoryId)} status={pet.status} />
    </a>
  )
}

interface Content {
  name: string
  /** Whose coat the picture shows, unless that is of `name` already. */
  coatOf?: string
  /** None as long as none is chosen. */
  category: Category | undefined
  status: PetStatus
}

/** What is on the card of an animal, be it there or about to be added. */
export function CardContent({ name, coatOf = name, category, status }: Content) {
  return (
    <>
      <Portrait species={category?.species ?? 'paw'} name={coatOf} />
      <span className="words">
        <span className="name">{name}</span>
        <span className="category">{category?.name}</span>
      </span>
      {/* That an animal can be had goes without saying. */}
      {status !== 'available' && <span className={`status ${status}`}>{statusNames[status]}</span>}
    </>
  )
}

/** Where animals will be, in a grid. */
export function Placeholders({ count }: { count: number }) {
  return Array.from({ length: count }, (_, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: nothing tells them apart, and none moves
    <li key={index} className="card skeleton" aria-hidden="true">
      <div className="portrait" />
      <span className="words">
        <span className="name" />
        <span className="category" />
      </span>
    </li>
  ))
}
