export const common = "the be to of and a in that have I it for not on with he as you do at this but his by from".toLowerCase().split(" ");
